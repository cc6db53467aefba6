/* Fuzz targets: one function per kind of input, each of which must take any bytes without crashing,
 * leaking or taking long. libFuzzer calls them through entry.c (`make fuzz`);
 * tests/test_fuzz_corpus.c replays the kept inputs without clang. */
#ifndef SP_TESTS_FUZZ_H
#define SP_TESTS_FUZZ_H
#include <stddef.h>
#include <stdint.h>
void fuzz_plan(const uint8_t *p,
               size_t n); /* a plan: read, laid over its model, lowered, verified, recorded */
void fuzz_config(const uint8_t *p, size_t n); /* a config.json, and the plan that uses it */
void fuzz_import(const uint8_t *p, size_t n); /* a framework's file, by the first byte; its plan */
void fuzz_names(const uint8_t *p, size_t n);  /* names and shapes, and tables laid over them */
void fuzz_safetensors(const uint8_t *p, size_t n); /* a weights file, and the run that reads it */
void fuzz_trace(const uint8_t *p,
                size_t n); /* a saved trace: read, written again, every view drawn */
void fuzz_schedule(const uint8_t *p, size_t n); /* a file of actions: read, held, gone through */
void fuzz_rule(const uint8_t *p, size_t n); /* the rule of an op: parsed, turned around, computed */
/* A file whose content is these bytes, under a path that stays the same; it ends with the process.
 */
const char *fuzz_file(const uint8_t *p, size_t n);
#endif

/* See calibrate_nccl.h. */
#include "drive/calibrate_nccl.h"
#include "cost/nccl.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* By the names of cards; the first that is in the name of the GPU. */
static const struct {
    const char *in_name, *word;
} cards[] = {{"A100", "ampere"},   {"A30", "ampere"},     {"H100", "hopper"},
             {"H200", "hopper"},   {"H800", "hopper"},    {"H20", "hopper"},
             {"GH200", "hopper"},  {"B100", "blackwell"}, {"B200", "blackwell"},
             {"B300", "blackwell"}};
enum { CARDS = sizeof cards / sizeof *cards };
static const double CHANNEL = 30e9, /* what NCCL's search gives a ring of an H100, bytes/s */
    PCI_MOST = 64e9;                /* PCIe 5 x16, one way: what is faster is NVLink */

static bool amd(void) {
    char line[256];
    bool found = false;
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && !found && fgets(line, sizeof line, f)) found = strstr(line, "AuthenticAMD") != NULL;
    if (f) fclose(f);
    return found;
}
/* Bytes/s on a ring's links: the best of the large ones. */
static double bus_of(const NcclSeen *seen, int n) {
    double most = 0, best = 0;
    for (int i = 0; i < n; i++) most = fmax(most, seen[i].sent);
    for (int i = 0; i < n; i++)
        if (seen[i].sent >= most / 8) best = fmax(best, seen[i].sent / seen[i].seconds);
    return best;
}
void calibrate_nccl(Str *s, const NcclSeen *seen, int n, const char *gpu) {
    const double bus = bus_of(seen, n);
    int card = 0;
    if (bus <= 0) return;
    str_addf(s, "# NCCL's collectives as nccl-tests counts them: S, of an all-reduce a rank's "
                "buffer, of a\n"
                "# reduce-scatter that of all parts; algorithm and bus bandwidth, in bytes/s.\n");
    for (int i = 0; i < n; i++) {
        double size = nccl_size(seen[i].op, seen[i].ranks, seen[i].sent), took = seen[i].seconds;
        str_addf(s, "#   %-14s %lld ranks  S %9.0f  %.3g s  algbw %.3g  busbw %.3g\n", seen[i].op,
                 (long long)seen[i].ranks, size, took, size / took, seen[i].sent / took);
    }
    while (card < CARDS && !(gpu && strstr(gpu, cards[card].in_name))) card++;
    double channels = fmax(1, round(bus / CHANNEL));
    str_addf(s, "nccl:\n  gpu: %s # %s\n", card < CARDS ? cards[card].word : "hopper",
             card < CARDS ? gpu : "assumed: its name says nothing");
    str_addf(s, "  cpu: %s\n  link: %s # by the bandwidth: PCIe has at most 64e9\n",
             amd() ? "amd" : "intel", bus > PCI_MOST ? "nvlink" : "pci");
    str_addf(s,
             "  channels: %.0f # of some 30e9 each, as NCCL's search makes them\n"
             "  channel_bandwidth: %.3g # the best bus bandwidth above, of the largest ones\n",
             channels, bus / channels);
    str_add(s, "  nvls_channels: 0 # not told apart: what NVLS does is in the rings'\n"
               "  nvls_bandwidth: 0\n  nvls_ranks: 0\n");
}

#include "exported.h"
#include "base/file.h"
#include "export/export.h"
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

Exported export_to(Arena *a, const char *file, const char *text, const char *framework) {
    PlanRun r = plan_run(a, file, text, false);
    if (!r.t || diags_errors(r.d)) {
        run_print(&r);
        fail_msg("%s does not pass", file);
    }
    const char *out = export_plan(a, r.d, r.rep.plan, framework);
    assert_int_equal(out != NULL, diags_errors(r.d) == 0);
    return (Exported){out, diags_text(a, r.d), r};
}
void export_refused(Arena *a, const char *file, const char *text, const char *framework,
                    const char *why) {
    Exported x = export_to(a, file, text, framework);
    if (x.text) fail_msg("%s to %s is written:\n%s", file, framework, x.text);
    if (!strstr(x.said, why) || !strstr(x.said, "[E0218]") || !strstr(x.said, "^") ||
        !strstr(x.said, "= help: "))
        fail_msg("%s to %s: no '%s' in\n%s", file, framework, why, x.said);
}
const char *shipped_text(Arena *a, const char *file) {
    Diags *d = diags_new(a);
    size_t n;
    const char *text = file_read(a, d, file, 1 << 20, (Loc){0}, &n);
    if (!text) fail_msg("%s", diags_text(a, d));
    return text;
}
void shipped_listed(const char *(*file)(int i), int n) {
    DIR *dir = opendir("plans");
    assert_non_null(dir);
    int found = 0;
    for (struct dirent *f; (f = readdir(dir));) {
        bool listed = !strstr(f->d_name, ".yaml");
        found += !listed;
        for (int i = 0; i < n; i++) listed |= strcmp(file(i), f->d_name) == 0;
        if (!listed) fail_msg("plans/%s is not in the table", f->d_name);
    }
    closedir(dir);
    assert_int_equal(n, found);
}

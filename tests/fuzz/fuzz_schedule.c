/* Any bytes as rows of actions, of four stages on two ranks as a V: read, held against its order
 * with what it says of gathers, messages put between if it has none, and all ranks gone through. */
#include "fuzz.h"
#include "schedule/play.h"
#include <assert.h>

void fuzz_schedule(const uint8_t *p, size_t n) {
    enum { STAGES = 4, MOST_PARTS = 64 };
    static const int home[STAGES] = {0, 1, 1, 0};
    if (n > 1 << 14) return;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    Schedule *s = schedule_read(a, d, diag_nowhere, fuzz_file(p, n), home, STAGES);
    assert(s || diags_errors(d));
    bool held = s && schedule_check_asides(s, d, true),
         whole = s && schedule_check(s, d, diag_nowhere);
    assert((held && whole) || diags_errors(d));
    bool messages = false;
    for (int r = 0; whole && r < s->ranks; r++)
        for (int i = 0; i < s->rank[r].n; i++) messages |= !action_computes(s->rank[r].a[i].kind);
    if (whole && s->parts <= MOST_PARTS) {
        if (!messages) schedule_add_p2p(s);
        int before = diags_errors(d);
        PlayTimes t = play_even(s, 1, 1, 1, a);
        Play *play = play_schedule(s, &t, a);
        play_report(play, d, diag_nowhere);
        assert((play->n_blocked > 0) == (diags_errors(d) > before));
    }
    arena_free(a);
}

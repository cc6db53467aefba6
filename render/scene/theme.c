/* The table of colours (visual.md 1.0.3 with the changes of figures/README.md 3), one row per role:
 * light, dark, print. The only file in which a colour is written down. */
#include "render/scene/theme.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

static const uint32_t colors[ROLE_COUNT][THEME_COUNT] = {
    [ROLE_PAPER] = {0xFFFFFF, 0x111418, 0xFFFFFF},
    [ROLE_INK] = {0x1A1A1A, 0xF2F2F2, 0x000000},
    [ROLE_SECOND] = {0x595959, 0xB8BEC6, 0x404040},
    [ROLE_TICK] = {0x595959, 0xB8BEC6, 0x404040},
    [ROLE_GRID] = {0xD9D9D9, 0x3A4048, 0xBFBFBF},
    [ROLE_FAINT] = {0x9A9A9A, 0x6E7681, 0x7F7F7F},
    [ROLE_COMPUTE] = {0xBBD9EE, 0x1F4E6E, 0xFFFFFF},
    [ROLE_COMPUTE_LINE] = {0x1F5F8B, 0x7FB4D9, 0x000000},
    [ROLE_COMPUTE_NOTE] = {0x34506A, 0xC9DDED, 0x404040},
    [ROLE_COMPUTE_DARK] = {0x7FA8C6, 0x2F6A92, 0xA6A6A6},
    [ROLE_COMPUTE_PALE] = {0xE4F0F8, 0x17364A, 0xF2F2F2},
    [ROLE_COLL] = {0xF0A35E, 0x7A4100, 0xD9D9D9},
    [ROLE_COLL_LINE] = {0x8A4B00, 0xF0A35E, 0x000000},
    [ROLE_COLL_PALE] = {0xFBE3C6, 0x3D2A12, 0xF2F2F2},
    [ROLE_COLL_WORD] = {0x8A4B00, 0xF0A35E, 0x000000},
    [ROLE_BAND] = {0xFBF1EA, 0x2A2019, 0xF2F2F2},
    [ROLE_WEIGHT_LINE] = {0x2B3A55, 0xC5D2E8, 0x000000},
    [ROLE_WEIGHT_FILL] = {0x1F5F8B, 0x7FB4D9, 0x595959},
    [ROLE_WEIGHT_REST] = {0xFFFFFF, 0x111418, 0xFFFFFF},
    [ROLE_BYTES] = {0x6DB0C9, 0x3B7F99, 0xBFBFBF},
    [ROLE_BYTES_2] = {0xE9C46A, 0x9A7A25, 0xFFFFFF},
    [ROLE_PASS] = {0x1B6E3C, 0x6FCF97, 0x000000},
    [ROLE_WARN] = {0x8A5A00, 0xE0B050, 0x000000},
    [ROLE_FAIL] = {0xB00020, 0xFF8A94, 0x000000},
    [ROLE_SHARD] = {0x3A5A94, 0x3A5A94, 0x595959},
    [ROLE_SHARD_1] = {0x6DB0C9, 0x6DB0C9, 0xA6A6A6},
    [ROLE_SHARD_2] = {0xE9C46A, 0xE9C46A, 0xD9D9D9},
    [ROLE_SHARD_3] = {0xF8EBD0, 0xF8EBD0, 0xFFFFFF},
    [ROLE_SHARD_TEXT] = {0xFFFFFF, 0xFFFFFF, 0xFFFFFF},
    [ROLE_SHARD_TEXT_1] = {0x1A1A1A, 0x1A1A1A, 0x000000},
    [ROLE_SHARD_TEXT_2] = {0x1A1A1A, 0x1A1A1A, 0x000000},
    [ROLE_SHARD_TEXT_3] = {0x1A1A1A, 0x1A1A1A, 0x000000},
    [ROLE_LIVE] = {0xC2603A, 0xC2603A, 0x808080},
    [ROLE_LIVE_TEXT] = {0x000000, 0x000000, 0x000000},
    [ROLE_LIVE_PALE] = {0xDE8E6C, 0x7A4634, 0xB4B4B4},
    [ROLE_EQUAL] = {0xF7F7F7, 0x1B1F24, 0xFFFFFF},
    [ROLE_ROUNDED] = {0xCBE3F0, 0x1F3F52, 0xEDEDED},
    [ROLE_SUSPECT] = {0xFEC44F, 0x6B5210, 0xD9D9D9},
    [ROLE_WRONG] = {0x993404, 0xF08A4B, 0x000000},
    [ROLE_WRONG_TEXT] = {0xFFFFFF, 0x111418, 0xFFFFFF},
    [ROLE_WRONG_LATER] = {0xCF8E6A, 0x6B4630, 0xBFBFBF},
    [ROLE_WRONG_AFTER] = {0xF6E6DB, 0x33271F, 0xF7F7F7},
    [ROLE_PART_SUM] = {0x6DB0C9, 0x1F4E6E, 0xD9D9D9},
    [ROLE_TARGET] = {0x6A3D9A, 0xCBA9EE, 0x000000},
    [ROLE_AXIS + AXIS_TP] = {0xB2182B, 0xE8747F, 0x000000},
    [ROLE_AXIS + AXIS_DP] = {0x004488, 0x6FA8E8, 0x000000},
    [ROLE_AXIS + AXIS_PP] = {0x000000, 0xE0E0E0, 0x000000},
    [ROLE_AXIS + AXIS_CP] = {0x009988, 0x2FC4B2, 0x000000},
    [ROLE_AXIS + AXIS_EP] = {0x7570B3, 0xA8A3E0, 0x000000},
    [ROLE_AXIS + AXIS_USER] = {0x999933, 0xC9C964, 0x000000},
    [ROLE_AXIS + AXIS_PRODUCT] = {0x774455, 0xD9A3BC, 0x000000},
    [ROLE_AXIS_TEXT + AXIS_TP] = {0xB2182B, 0xF28B95, 0x000000},
    [ROLE_AXIS_TEXT + AXIS_DP] = {0x004488, 0x8ABBF0, 0x000000},
    [ROLE_AXIS_TEXT + AXIS_PP] = {0x000000, 0xE0E0E0, 0x000000},
    [ROLE_AXIS_TEXT + AXIS_CP] = {0x00695E, 0x4FD6C5, 0x000000},
    [ROLE_AXIS_TEXT + AXIS_EP] = {0x5B5699, 0xB9B5EA, 0x000000},
    [ROLE_AXIS_TEXT + AXIS_USER] = {0x66661A, 0xD6D67A, 0x000000},
    [ROLE_AXIS_TEXT + AXIS_PRODUCT] = {0x774455, 0xE3B5C8, 0x000000},
    [ROLE_AXIS_PILL + AXIS_TP] = {0xFFFFFF, 0x111418, 0xFFFFFF},
    [ROLE_AXIS_PILL + AXIS_DP] = {0xFFFFFF, 0x111418, 0xFFFFFF},
    [ROLE_AXIS_PILL + AXIS_PP] = {0xFFFFFF, 0x111418, 0xFFFFFF},
    [ROLE_AXIS_PILL + AXIS_CP] = {0x000000, 0x111418, 0xFFFFFF},
    [ROLE_AXIS_PILL + AXIS_EP] = {0x000000, 0x111418, 0xFFFFFF},
    [ROLE_AXIS_PILL + AXIS_USER] = {0x000000, 0x111418, 0xFFFFFF},
    [ROLE_AXIS_PILL + AXIS_PRODUCT] = {0xFFFFFF, 0x111418, 0xFFFFFF},
    [ROLE_AXIS_TINT + AXIS_TP] = {0xF6DADD, 0x43191F, 0xF2F2F2},
    [ROLE_AXIS_TINT + AXIS_DP] = {0xD3E0EE, 0x15314F, 0xF2F2F2},
    [ROLE_AXIS_TINT + AXIS_PP] = {0xE6E6E6, 0x34383D, 0xF2F2F2},
    [ROLE_AXIS_TINT + AXIS_CP] = {0xD0EDE9, 0x0E3B36, 0xF2F2F2},
    [ROLE_AXIS_TINT + AXIS_EP] = {0xE5E4F1, 0x2B2947, 0xF2F2F2},
    [ROLE_AXIS_TINT + AXIS_USER] = {0xEEEEDA, 0x35351A, 0xF2F2F2},
    [ROLE_AXIS_TINT + AXIS_PRODUCT] = {0xEBDCE2, 0x35222A, 0xF2F2F2},
};

static const char *const names[] = {"light", "dark", "print", NULL};

bool theme_find(const char *name, Theme *out) {
    *out = THEME_LIGHT;
    if (!name) return true;
    for (int i = 0; names[i]; i++)
        if (!strcmp(name, names[i])) {
            *out = (Theme)i;
            return true;
        }
    return false;
}
const char *const *theme_names(void) { return names; }
uint32_t theme_color(Theme t, Role r) { return colors[r][t]; }

uint32_t theme_blend(uint32_t upper, uint32_t lower, double opacity) {
    uint32_t seen = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        double u = upper >> shift & 255, l = lower >> shift & 255;
        seen |= (uint32_t)lround(l + opacity * (u - l)) << shift;
    }
    return seen;
}

/* An axis belongs to a kind if its name is the kind's, alone or followed by a part or suffix: tp.0,
 * dp_shard. */
static AxisKind kind_of_one(const char *axes) {
    static const struct {
        const char *name;
        AxisKind kind;
    } row[] = {{"tp", AXIS_TP},    {"sp", AXIS_TP},   {"dp", AXIS_DP},       {"fsdp", AXIS_DP},
               {"pp", AXIS_PP},    {"cp", AXIS_CP},   {"ep", AXIS_EP},       {"tensor", AXIS_TP},
               {"data", AXIS_DP},  {"pipe", AXIS_PP}, {"pipeline", AXIS_PP}, {"context", AXIS_CP},
               {"expert", AXIS_EP}};
    if (!axes) return AXIS_USER;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        size_t n = strlen(row[i].name);
        if (strncmp(axes, row[i].name, n)) continue;
        if (!axes[n] || strchr("._*0123456789", axes[n])) return row[i].kind;
    }
    return AXIS_USER;
}

/* Parts of one axis, tp.0*tp.1 and dp_replicate*dp_shard, are no product. */
AxisKind theme_axis(const char *axes) {
    const AxisKind kind = kind_of_one(axes);
    size_t name = axes ? strcspn(axes, ".*") : 0;
    for (const char *p = axes; p && (p = strchr(p, '*'));) {
        bool same = !strncmp(++p, axes, name) && strcspn(p, ".*") == name;
        if (kind_of_one(p) != kind || (kind == AXIS_USER && !same)) return AXIS_PRODUCT;
    }
    return kind;
}

const double *theme_axis_dash(AxisKind k, int *n) {
    static const double dash[AXIS_KINDS][4] = {
        [AXIS_DP] = {8, 4},  [AXIS_PP] = {2, 3},   [AXIS_CP] = {8, 3, 2, 3},
        [AXIS_EP] = {14, 4}, [AXIS_USER] = {1, 2}, [AXIS_PRODUCT] = {12, 3, 4, 3}};
    static const int len[AXIS_KINDS] = {[AXIS_DP] = 2, [AXIS_PP] = 2,   [AXIS_CP] = 4,
                                        [AXIS_EP] = 2, [AXIS_USER] = 2, [AXIS_PRODUCT] = 4};
    *n = len[k];
    return dash[k];
}

static double luminance(uint32_t c) {
    static const double weight[3] = {0.2126, 0.7152, 0.0722};
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        double v = (double)(c >> (16 - 8 * i) & 255) / 255.0;
        sum += weight[i] * (v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4));
    }
    return sum;
}
double theme_contrast(uint32_t a, uint32_t b) {
    double la = luminance(a), lb = luminance(b);
    double hi = la > lb ? la : lb, lo = la > lb ? lb : la;
    return (hi + 0.05) / (lo + 0.05);
}

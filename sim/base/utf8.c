/* Characters of UTF-8, and the one table of those that no output shows as they are. */
#include "base/utf8.h"

size_t utf8_char(const char *s, size_t n, int32_t *code) {
    unsigned char c = (unsigned char)s[0];
    size_t k = c < 0x80                ? 1
               : c >= 0xC2 && c < 0xE0 ? 2
               : c >= 0xE0 && c < 0xF0 ? 3
               : c >= 0xF0 && c < 0xF5 ? 4
                                       : 0;
    int32_t v = k == 1 ? c : c & (0xFF >> (k + 1));
    *code = -1;
    if (!k || k > n) return 1;
    for (size_t i = 1; i < k; i++) {
        if (((unsigned char)s[i] & 0xC0) != 0x80) return 1;
        v = v << 6 | ((unsigned char)s[i] & 0x3F);
    }
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (v < least[k] || v > 0x10FFFF || (v >= 0xD800 && v < 0xE000)) return 1;
    *code = v;
    return k;
}

bool utf8_is_hostile(int32_t c) {
    static const struct {
        int32_t from, to;
    } range[] = {{-1, 0x1F},       {0x7F, 0x9F},     {0x061C, 0x061C}, {0x200E, 0x200F},
                 {0x2028, 0x202E}, {0x2066, 0x2069}, {0xFFFE, 0xFFFF}};
    if (c >= 0x20 && c < 0x7F) return false;
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (c >= range[i].from && c <= range[i].to) return true;
    return false;
}

/* Where the matrices of a slide stand: in columns, with their words under or beside them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "render/shards/shards_tiles.h"

/* Tiles stand in as many columns as there is room for, a short one under its like, words beside a
 * matrix that takes the height; none lies on another, whatever the room. */
static void tiles_take_the_room(void **state) {
    (void)state;
    Arena *a = arena_new();
    const ShardTile
        tall = {.left = 20, .w = 40, .h = 300, .name_w = 30, .words_w = 90, .words_h = 68},
        flat = {.left = 20, .w = 60, .h = 20, .name_w = 30, .words_w = 90, .words_h = 68};
    double high;
    ShardTile t[4] = {flat, flat, tall, flat};
    assert_true(shards_tiles(a, t, 4, 900, 340, &high));
    assert_true(high <= 340 && t[2].words.x > t[2].at.x + tall.w); /* beside: it is too high */
    for (int i = 0; i < 4; i++) assert_true(t[i].at.y == 0 && t[i].at.x >= 20);
    assert_true(t[0].words.x == t[0].at.x && t[0].words.y >= TILE_NAME + flat.h);
    assert_true(shards_tiles(a, t, 4, 460, 340, &high)); /* the two alike share a column */
    assert_true(t[1].at.x == t[0].at.x && t[1].at.y >= t[0].words.y + flat.words_h);
    assert_true(t[2].at.y == 0 && t[3].at.y == 0);
    assert_false(shards_tiles(a, t, 4, 200, 340, &high));
    assert_false(shards_tiles(a, t, 4, 900, 200, &high));
    for (int i = 1; i < 4; i++)
        assert_true(t[i].at.x > t[i - 1].at.x ||
                    t[i].at.y >= t[i - 1].at.y + TILE_NAME + t[i - 1].h);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_take_the_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

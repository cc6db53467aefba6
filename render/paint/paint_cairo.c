/* The Cairo painter: PNG and PDF. Both are written into memory; the caller puts them where they
 * belong. PNG is compressed by libpng itself with low effort and one filter, because
 * cairo_surface_write_to_png offers no choice: for the slide preset it takes 48 ms, painting and
 * this writer together 26 ms. PDF has fixed dates: same scene, same bytes. */
#include "render/paint/paint.h"
#include "render/scene/fonts_layout.h"
#include <cairo-pdf.h>
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

/* What Cairo says went wrong, or NULL. A lack of memory is no fault of the picture. */
static const char *trouble(cairo_status_t s) {
    if (s == CAIRO_STATUS_NO_MEMORY)
        base_die(5, "out of memory while a picture was painted; try a smaller --width [E0701]");
    return s == CAIRO_STATUS_SUCCESS ? NULL : cairo_status_to_string(s);
}

static void set_color(cairo_t *cr, const Scene *s, Role r, double opacity) {
    uint32_t c = theme_color(s->theme, r);
    cairo_set_source_rgba(cr, (c >> 16 & 255) / 255.0, (c >> 8 & 255) / 255.0, (c & 255) / 255.0,
                          opacity);
}

static void finish(cairo_t *cr, const Scene *s, const Mark *m) {
    if (m->fill != ROLE_NONE) {
        set_color(cr, s, m->fill, m->opacity);
        cairo_fill_preserve(cr);
    }
    if (m->stroke != ROLE_NONE && m->line > 0) {
        set_color(cr, s, m->stroke, 1);
        cairo_set_line_width(cr, m->line);
        cairo_set_line_join(cr, m->miter || m->kind == MARK_RECT ? CAIRO_LINE_JOIN_MITER
                                                                 : CAIRO_LINE_JOIN_ROUND);
        cairo_set_dash(cr, m->dash, m->n_dash, 0);
        cairo_stroke_preserve(cr);
    }
    cairo_new_path(cr);
}

static void rect_path(cairo_t *cr, const Mark *m) {
    double x = m->x, y = m->y, w = m->w, h = m->h, r = m->r;
    if (r <= 0) {
        cairo_rectangle(cr, x, y, w, h);
        return;
    }
    cairo_new_sub_path(cr);
    cairo_arc(cr, x + w - r, y + r, r, -M_PI / 2, 0);
    cairo_arc(cr, x + w - r, y + h - r, r, 0, M_PI / 2);
    cairo_arc(cr, x + r, y + h - r, r, M_PI / 2, M_PI);
    cairo_arc(cr, x + r, y + r, r, M_PI, 1.5 * M_PI);
    cairo_close_path(cr);
}

/* A corner of radius r as in SVG's Q: the quadratic curve raised to a cubic one. */
static void corner(cairo_t *cr, Pt a, Pt b, Pt c, double r) {
    double la = hypot(a.x - b.x, a.y - b.y), lc = hypot(c.x - b.x, c.y - b.y);
    double k = fmin(r, fmin(la, lc) / 2);
    if (k <= 0 || la <= 0 || lc <= 0) {
        cairo_line_to(cr, b.x, b.y);
        return;
    }
    Pt p = {b.x + (a.x - b.x) * k / la, b.y + (a.y - b.y) * k / la};
    Pt q = {b.x + (c.x - b.x) * k / lc, b.y + (c.y - b.y) * k / lc};
    cairo_line_to(cr, p.x, p.y);
    cairo_curve_to(cr, p.x + 2 * (b.x - p.x) / 3, p.y + 2 * (b.y - p.y) / 3,
                   q.x + 2 * (b.x - q.x) / 3, q.y + 2 * (b.y - q.y) / 3, q.x, q.y);
}

static void points_path(cairo_t *cr, const Mark *m) {
    for (int i = 0; i < m->n; i++) {
        bool start = i == 0 || (m->kind == MARK_HATCH && i % 2 == 0);
        if (start) cairo_move_to(cr, m->pt[i].x, m->pt[i].y);
        else if (m->kind == MARK_LINE && i + 1 < m->n)
            corner(cr, m->pt[i - 1], m->pt[i], m->pt[i + 1], m->bend);
        else cairo_line_to(cr, m->pt[i].x, m->pt[i].y);
    }
    if (m->kind == MARK_POLY) cairo_close_path(cr);
}

static void paint_words(cairo_t *cr, const Scene *s, const Mark *m) {
    static const double shift[] = {[ALIGN_LEFT] = 0, [ALIGN_MIDDLE] = 0.5, [ALIGN_RIGHT] = 1};
    PangoLayout *l = fonts_layout(s->fonts, m->run, m->n_run, m->size, (int)s->theme);
    cairo_move_to(cr, m->x - shift[m->align] * m->w, m->y);
    pango_cairo_show_layout_line(cr, pango_layout_get_line_readonly(l, 0));
    cairo_new_path(cr);
}

static bool finite_mark(const Mark *m) {
    Box b = scene_box(m);
    return isfinite(b.x0) && isfinite(b.x1) && isfinite(b.y0) && isfinite(b.y1);
}

static void paint_scene(cairo_t *cr, const Scene *s) {
    set_color(cr, s, ROLE_PAPER, 1);
    cairo_paint(cr);
    cairo_translate(cr, s->off_x, s->off_y);
    cairo_scale(cr, s->scale, s->scale);
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (!finite_mark(m)) continue; /* Cairo accepts NaN in silence; the lint names the mark */
        if (m->kind == MARK_TEXT) {
            paint_words(cr, s, m);
            continue;
        }
        if (m->kind == MARK_RECT) rect_path(cr, m);
        else if (m->kind == MARK_CIRCLE) cairo_arc(cr, m->x, m->y, m->r, 0, 2 * M_PI);
        else points_path(cr, m);
        finish(cr, s, m);
    }
}

static void png_put(png_structp png, png_bytep p, png_size_t n) {
    sink_add(png_get_io_ptr(png), p, n);
}
static void png_flush_nothing(png_structp png) { (void)png; }

/* ARGB32 of Cairo, opaque, to RGB rows. libpng's errors come back through longjmp, so nothing is
 * allocated in between.
 */
static const char *encode(const unsigned char *data, int w, int h, int stride, unsigned char *row,
                          Sink *out) {
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info || setjmp(png_jmpbuf(png))) {
        png_destroy_write_struct(&png, info ? &info : NULL);
        return "libpng could not write the picture";
    }
    png_set_write_fn(png, out, png_put, png_flush_nothing);
    png_set_compression_level(png, 4);
    png_set_filter(png, 0, PNG_FILTER_UP);
    png_set_IHDR(png, info, (png_uint_32)w, (png_uint_32)h, 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int y = 0; y < h; y++) {
        const uint32_t *p = (const uint32_t *)(const void *)(data + (size_t)y * (size_t)stride);
        for (int x = 0; x < w; x++) {
            row[3 * x] = (unsigned char)(p[x] >> 16);
            row[3 * x + 1] = (unsigned char)(p[x] >> 8);
            row[3 * x + 2] = (unsigned char)p[x];
        }
        png_write_row(png, row);
    }
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return NULL;
}

const char *paint_png(const Scene *s, int width_px, Sink *out) {
    double w = width_px > 0 ? width_px : s->px_width, k = w / s->page_w,
           h = ceil(s->page_h * k - 1e-6);
    if (!(w >= 1 && w <= 32767 && h >= 1 && h <= 32767))
        return "a side of the picture is not between 1 and 32767 px";
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)w, (int)h);
    cairo_t *cr = cairo_create(surface);
    cairo_scale(cr, k, k);
    paint_scene(cr, s);
    cairo_status_t status = cairo_status(cr);
    cairo_destroy(cr);
    cairo_surface_flush(surface);
    if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(surface);
    const char *error = trouble(status);
    if (!error) {
        unsigned char *row = base_malloc(base_mul((size_t)w, 3));
        error = encode(cairo_image_surface_get_data(surface), (int)w, (int)h,
                       cairo_image_surface_get_stride(surface), row, out);
        free(row);
        /* the sizes are right and the sink cannot fail: what remains is memory, of libpng or of
         * zlib */
        if (error) base_die(5, "%s: out of memory [E0701]", error);
    }
    cairo_surface_destroy(surface);
    return error;
}

static cairo_status_t pdf_put(void *sink, const unsigned char *p, unsigned int n) {
    sink_add(sink, p, n);
    return CAIRO_STATUS_SUCCESS;
}

const char *paint_pdf(Scene *const *page, int n, Sink *out) {
    double unit = 0.75; /* px of 1/96 inch in points */
    const Scene *s0 = page[0];
    double k0 = s0->points ? 1 : unit;
    cairo_surface_t *surface =
        cairo_pdf_surface_create_for_stream(pdf_put, out, s0->page_w * k0, s0->page_h * k0);
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, s0->title);
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_SUBJECT, s0->desc);
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATOR, "shardproof");
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, "2026-01-01T00:00:00Z");
    cairo_t *cr = cairo_create(surface);
    for (int i = 0; i < n; i++) {
        double k = page[i]->points ? 1 : unit;
        cairo_pdf_surface_set_size(surface, page[i]->page_w * k, page[i]->page_h * k);
        cairo_save(cr);
        cairo_scale(cr, k, k);
        paint_scene(cr, page[i]);
        cairo_restore(cr);
        cairo_show_page(cr);
    }
    cairo_status_t status = cairo_status(cr);
    cairo_destroy(cr);
    cairo_surface_finish(surface);
    if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    return trouble(status);
}

/* Seconds that only go forward, for telling how long something took. Refuses to know the date. */
#ifndef SP_BASE_CLOCK_H
#define SP_BASE_CLOCK_H

/* Seconds since some moment before the program began; never fails. */
double clock_seconds(void);
#endif

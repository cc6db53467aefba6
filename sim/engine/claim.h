/* Who has the last words of a run. Several of its processes may see one end, each at another moment
 * and none knowing of the others: a rank that is stopped is missed by rank 0, by those that wait
 * for it, and by its guard, and when that has ended it rank 0 sees a process that has ended. One of
 * them speaks: the first, by a word of memory that the processes of a run on one machine share.
 * Refuses to judge what is said, and to reach other machines. */
#ifndef SP_ENGINE_CLAIM_H
#define SP_ENGINE_CLAIM_H

/* From now on base_last_words of this process, and of those that it forks, are said only if no
 * other process of `job` (place_job) on this machine has had any. For as long as the process lives:
 * called once. Where the system has no means for it the processes share it that are forked from
 * here. Never fails; leaves no file. */
void claim_share(const char *job);
#endif

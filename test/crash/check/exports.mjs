/** A queue that was exported: each job that was accepted before is in the file, and none is in it twice. */

/** @param fail is told of what must not be */
export function checkExports({ exports }, fail) {
  for (const { queue, accepted, ids, end, sentAt } of exports) {
    // A file without its last line breaks off where the server died: nobody imports it.
    if (!end) continue;
    const evidence = { queue, sentAt, end };
    const there = new Set(ids);
    if (there.size < ids.length) fail('export', `a job is twice in the export of ${queue}`, evidence);
    const sum = Object.values(end.jobs).reduce((all, n) => all + n, 0);
    if (sum !== ids.length) fail('export', `an export of ${queue} counts ${sum} jobs and has ${ids.length}`, evidence);
    // What a batch over several queues has brought may not have been committed in this one yet.
    if (end.not_kept.undecided_batch) continue;
    for (const id of accepted) {
      if (!there.has(id)) fail('export', `${id}, accepted before, is not in the export of ${queue}`, evidence);
    }
  }
}

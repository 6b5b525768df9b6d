/** Groups in a strict order: one job at a time, and each begins after all that were enqueued before it have ended. */
import { grouped } from './facts.mjs';

/** @param look one look at the server, see `check.mjs` */
export function checkOrder({ facts, found }, fail) {
  const ordered = [...facts.jobs.values()].filter(({ group }) => group !== undefined);
  for (const [group, jobs] of grouped(ordered, ({ queue, group }) => `${queue} ${group}`)) {
    let before;
    for (const { token } of jobs.sort((a, b) => a.order - b.order)) {
      const [seen] = found.get(token) ?? [];
      if (!seen) continue;
      const first = Math.min(...(facts.runs.get(token) ?? []).map(({ startedAt }) => startedAt));
      const wasLate = before && (before.endedAt === undefined || first < before.endedAt);
      if (wasLate && Number.isFinite(first)) {
        const message = `in ${group}, ${token} began at ${first}, and ${before.token} before it ended at ${before.endedAt}`;
        fail('order', message, { seen, before, runs: facts.runs.get(token), kills: facts.kills });
      }
      before = seen;
    }
  }
}

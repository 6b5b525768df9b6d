/** How long this isolate of the Worker has answered. */

let startedAt: number | undefined;

/** Seconds since it was first asked for this. @param now epoch ms */
export function uptime(now: number): number {
  startedAt ??= now;
  return Math.max(0, Math.floor((now - startedAt) / 1000));
}

/** The servers that scenarios run against, by kind. */
import { startWorkerd } from './workerd.mjs';
import { startWrangler } from './wrangler.mjs';

export const KINDS = {
  workerd: { name: 'raw workerd', start: () => startWorkerd() },
  wrangler: { name: 'wrangler dev', start: () => startWrangler() },
  counting: { name: 'raw workerd, counting rows', start: () => startWorkerd({ count: true }) },
};

/** Starts a server of this kind; `close` ends it and removes its state. */
export async function start(kind) {
  return { kind, ...(await KINDS[kind].start()) };
}

/**
 * A producer in a process of its own: `node filler.mjs <url> <queue> <jobs>`. Fills the queue when its parent says so, and says
 * when it is done. In the process of the load it would hold up what is measured there.
 */
import { once } from 'node:events';
import { loadClient } from '../servers/client.mjs';
import { PAYLOAD } from './load.mjs';

/** Jobs in one call. */
const CALL = 1_000;

const [url, queue, jobs] = process.argv.slice(2);
process.once('disconnect', () => process.exit());

const client = new (await loadClient())({ url });
process.send('ready');
await once(process, 'message');
const many = Array(CALL).fill({ type: 'steady.other', args: [PAYLOAD], options: { queue } });
for (let left = Number(jobs); left > 0; left -= CALL) await client.enqueueMany(many);
process.send('done');

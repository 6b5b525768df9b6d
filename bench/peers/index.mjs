/** Other queues, measured like Tocsin: the same measures, sizes and machine, one after the other. */
import { measure as bullmq } from './bullmq.mjs';
import { measure as queues } from './queues.mjs';

export const PEERS = [
  { name: 'BullMQ, Redis appendfsync always', measure: bullmq },
  { name: 'Cloudflare Queues, local', measure: queues },
];

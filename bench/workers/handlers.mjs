/** `HANDLERS` of the Worker under test. Queues not named here are pulled: nothing is pushed from them. */
export const HANDLERS = {
  'drain-10/*': 'HANDLER',
  'drain-1000/*': { binding: 'HANDLER', batch_size: 100 },
  'latency/*': 'HANDLER',
  'life-1/*': 'HANDLER',
  'life-100/*': { binding: 'HANDLER', batch_size: 100 },
  'life-delayed/*': { binding: 'HANDLER', batch_size: 100 },
  'life-retried/*': { binding: 'HANDLER', batch_size: 100 },
};

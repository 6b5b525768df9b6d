/** `HANDLERS` of the Worker under load. Queues not named here are pulled: nothing is pushed from them. */
const most = (binding) => ({ binding, batch_size: 100 });

export const HANDLERS = {
  'load-backlog/*': most('HANDLER'),
  'load-drain/*': most('HANDLER'),
  'load-producers/*': most('HANDLER'),
  'latency/*': 'HANDLER',
  'load-due/*': most('LOAD'),
  'load-failing/*': most('LOAD'),
  'load-payload/*': most('LOAD'),
  'load-payload-held/*': most('LOAD'),
};

/** Only where the handler Worker that dies runs beside the queue. */
export const POISON_HANDLERS = { 'load-poison/*': 'POISON' };

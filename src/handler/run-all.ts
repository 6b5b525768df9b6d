/** Runs the deliveries of one call: each by itself, or together where their handler takes many jobs. */
import type { Host } from './host';
import type { BrokenDelivery, DeliveryOutcome, HandlerDelivery } from './protocol';
import type { Registration, Registry } from './registry';
import { runDelivery } from './run';
import { runChunk } from './run-chunk';

/** Jobs that run in one call of their handler. */
interface Chunk {
  registration: Registration;
  deliveries: HandlerDelivery[];
  run?: Promise<DeliveryOutcome[]>;
}

/** Runs deliveries. @returns their outcomes, in order; none rejects */
export function runAll(
  deliveries: readonly (HandlerDelivery | BrokenDelivery)[],
  registry: Registry,
  host: Host,
): Promise<DeliveryOutcome>[] {
  const open = new Map<string, Chunk>();
  const places = deliveries.map((delivery) => {
    const registration = delivery.kind === 'job' ? registry.find(delivery.job.type) : undefined;
    if (delivery.kind !== 'job' || !registration?.chunk) return undefined;
    const { size, by } = registration.chunk.settings;
    const { type, group = '' } = delivery.job;
    const name = by === 'group' ? `${type} ${group}` : type;
    let chunk = open.get(name);
    // A queue that knows no chunks may send more than one has.
    if (!chunk || chunk.deliveries.length >= size) {
      chunk = { registration, deliveries: [] };
      open.set(name, chunk);
    }
    return { chunk, at: chunk.deliveries.push(delivery) - 1 };
  });
  return deliveries.map(async (delivery, index) => {
    const place = places[index];
    if (!place) return await runDelivery(delivery, registry, host);
    const { chunk, at } = place;
    chunk.run ??= runChunk(chunk.deliveries, chunk.registration, registry, host);
    return (await chunk.run)[at] as DeliveryOutcome;
  });
}

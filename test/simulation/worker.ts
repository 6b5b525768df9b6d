/** The simulation in a Worker of its own, which the runtime starts in a moment: `workerd.mjs` does so. */
import { DurableObject } from 'cloudflare:workers';
import { refuseLargeValues } from '../support/faults';
import { check, type Order } from './check';

interface Env {
  ORDER: Order;
  SIMULATED: DurableObjectNamespace<Simulated>;
}

export class Simulated extends DurableObject<Env> {
  /** @returns the failure and where it comes from, if a history does not agree with the model */
  async play(): Promise<string | undefined> {
    const { storage } = this.ctx;
    refuseLargeValues(Object.getPrototypeOf(storage.sql));
    const failure = await check(storage, this.env.ORDER);
    return (
      failure && [failure.message, failure.cause instanceof Error && failure.cause.stack].filter(Boolean).join('\n')
    );
  }
}

export default {
  async test(_controller: unknown, { SIMULATED }: Env): Promise<void> {
    const failure = await SIMULATED.getByName('simulated').play();
    if (failure === undefined) return;
    console.log(failure);
    throw new Error('a history does not agree with the model');
  },
};

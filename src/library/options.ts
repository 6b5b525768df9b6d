/** What the code of a deployment may say of it. */
import type { Declared, OwnDelivery } from '../declaration';
import type { HandlerWorker } from '../handler/types';

/** The options of `createTocsin`. */
export interface TocsinOptions {
  /** Handlers that run in this Worker: what `defineHandlers` returned. Others are bound with `HANDLERS`. */
  // biome-ignore lint/suspicious/noExplicitAny: handlers of any environment
  handlers?: HandlerWorker<any>;
  /** How pushed jobs travel to these handlers. */
  delivery?: OwnDelivery;
}

/** The options, checked. @throws {TypeError} naming the option that is wrong */
export function readOptions(options: TocsinOptions): Declared & Pick<TocsinOptions, 'handlers' | 'delivery'> {
  return { queues: {}, limits: {}, crons: {}, ...options };
}

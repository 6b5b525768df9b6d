/** Backing off from a directory that could not be asked, wherever work can continue without it. */
import type { Env } from '../config';
import { Backoff } from '../durable/backoff';
import { perDeployment } from '../durable/memory';

/** This isolate's, for one deployment. */
export const directoryRest = perDeployment((_: Env) => new Backoff(() => Date.now()));

/** Asks, once for each isolate, whether the deployment was created in the place that its variable names. */
import { type Env, locationOf } from '../config';
import { type ApiError, unavailable } from '../job/errors';
import { wrongPlace } from '../rpc/place';
import { directoryObject, placelessDirectory } from '../rpc/stubs';

const known = new WeakMap<Env, { refusal?: ApiError }>();

/** @throws {ApiError} 500 `invalid_configuration`; 503 where it cannot be known yet */
export function checkPlace(env: Env): Promise<void> | undefined {
  const location = locationOf(env);
  if (location === undefined) return undefined;
  const found = known.get(env);
  if (found?.refusal) throw found.refusal;
  return found ? undefined : claim(env, location);
}

async function claim(env: Env, location: string): Promise<void> {
  // Throws where the runtime has no places, before anything is written.
  directoryObject(env);
  const created = await placelessDirectory(env)
    .claimPlace(location)
    .catch((error: unknown) => {
      console.error('tocsin: the place of the data cannot be known:', error);
      throw unavailable('Whether DATA_LOCATION is where this deployment was created cannot be known at the moment.');
    });
  const refusal = created === location ? undefined : wrongPlace(created ?? undefined, location);
  known.set(env, refusal ? { refusal } : {});
  if (refusal) throw refusal;
}

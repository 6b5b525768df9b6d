/** Where the data of a deployment lies, which never changes: an object of another place is another, empty one. */
import { type Env, locationOf } from '../config';
import { ApiError, invalidConfiguration } from '../job/errors';

/** 500: this deployment's data lies elsewhere. @param created absent: in no place in particular */
export function wrongPlace(created: string | undefined, wanted: string | undefined): ApiError {
  const was = created === undefined ? 'without a place' : `in ${created}`;
  const is = wanted === undefined ? 'not set' : wanted;
  const message = `This deployment was created ${was}, and DATA_LOCATION is ${is}: its data stays where it is.`;
  const set = created === undefined ? 'Leave DATA_LOCATION empty' : `Set DATA_LOCATION to ${created}`;
  const hint = `${set}. To move, export the queues and import them into a new deployment.`;
  return new ApiError({ ...invalidConfiguration(message, { variable: 'DATA_LOCATION' }).data, hint });
}

/** Why an object must do nothing, if it does not lie where the variable says. */
export function misplacement({ jurisdiction }: Pick<DurableObjectId, 'jurisdiction'>, env: Env): ApiError | undefined {
  try {
    const location = locationOf(env);
    return (jurisdiction ?? undefined) === location ? undefined : wrongPlace(jurisdiction, location);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

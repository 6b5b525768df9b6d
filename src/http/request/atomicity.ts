/** `atomicity` of a request about many jobs. */
import { invalidRequest } from '../../job/errors';
import type { JsonObject } from './body';

/** `atomic`: all or none. `partial`, the default: as many as possible. @throws {ApiError} 400 */
export function readAtomicity({ atomicity }: JsonObject): 'atomic' | 'partial' {
  if (atomicity === undefined || atomicity === null) return 'partial';
  if (atomicity === 'atomic' || atomicity === 'partial') return atomicity;
  throw invalidRequest('atomicity', 'atomicity must be "partial" or "atomic".');
}

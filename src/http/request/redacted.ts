/** A caller must not write a redacted value back in place of the real one. */
import { holdsRedacted, REDACTED } from '../../access/redaction';
import { type ApiError, unsupported } from '../../job/errors';
import type { AppContext } from '../context';
import type { JsonObject } from './body';

/** A hidden value would be lost if it were written as shown. @param field at fault @throws {ApiError} 422 */
export function refuseRedacted(c: AppContext, given: JsonObject, field: string): void {
  if (c.get('redact') && holdsRedacted(JSON.stringify(given))) throw wouldBeLost(field);
}

/** 422: a value stands for what this key is not shown. */
export const wouldBeLost = (field: string): ApiError =>
  unsupported(
    `What is sent holds "${REDACTED}", which stands for what this key is not shown.`,
    { field, required_scope: 'data:reveal' },
    'Leave out the members that are not to be changed, or use a key with the scope data:reveal.',
  );

/** What is not shown to a caller must not be written by it either, in the place of what it stands for. */
import { unsupported } from '../../job/errors';
import { holdsRedacted, REDACTED } from '../../job/redaction';
import type { AppContext } from '../context';
import type { JsonObject } from './body';

/**
 * What was hidden from whoever edits would be lost if it were written as it was shown.
 * @param field that is at fault
 * @throws {ApiError} 422
 */
export function refuseRedacted(c: AppContext, given: JsonObject, field: string): void {
  if (!c.get('redact') || !holdsRedacted(JSON.stringify(given))) return;
  throw unsupported(
    `What is sent holds "${REDACTED}", which stands for what this key is not shown.`,
    { field, required_scope: 'data:reveal' },
    'Leave out the members that are not to be changed, or use a key with the scope data:reveal.',
  );
}

/** The limits of the server, for the manifest and the configuration. */
import type { ServerLimits } from '../../contract/system';
import { MAX_BATCH_SIZE, MAX_ENVELOPE_BYTES, MAX_META_BYTES, MAX_RESULT_BYTES } from '../../job/envelope/names';

export const LIMITS: ServerLimits = {
  max_envelope_bytes: MAX_ENVELOPE_BYTES,
  max_meta_bytes: MAX_META_BYTES,
  max_result_bytes: MAX_RESULT_BYTES,
  max_batch_size: MAX_BATCH_SIZE,
};

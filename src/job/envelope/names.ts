/** Grammar and limits of the names and sizes in a job envelope, in one place for parser, queue routes and manifest. */

export const MAX_ENVELOPE_BYTES = 1_048_576;
export const MAX_META_BYTES = 65_536;
export const MAX_RESULT_BYTES = 1_048_576;
export const MAX_BATCH_SIZE = 1000;

const TYPE = /^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*$/;
const QUEUE = /^[a-z0-9][a-z0-9.-]*$/;
const MAX_TYPE_LENGTH = 255;
const MAX_QUEUE_LENGTH = 128;

/** Is this a job type? Dot-separated lower-case words, at most 255 characters. */
export const isJobType = (text: string): boolean => text.length <= MAX_TYPE_LENGTH && TYPE.test(text);

/** Is this a queue name? Lower-case letters, digits, dots and hyphens, at most 128 characters. */
export const isQueueName = (text: string): boolean => text.length <= MAX_QUEUE_LENGTH && QUEUE.test(text);

export const TYPE_SCHEMA = { type: 'string', pattern: TYPE.source, maxLength: MAX_TYPE_LENGTH };
export const QUEUE_SCHEMA = { type: 'string', pattern: QUEUE.source, maxLength: MAX_QUEUE_LENGTH };

export const TYPE_RULE =
  'must be lower-case words joined by dots (letters, digits, "_" and "-", each word starting with a letter), at most 255 characters';

export const QUEUE_RULE =
  'must be lower-case letters, digits, "." and "-", starting with a letter or digit, at most 128 characters';

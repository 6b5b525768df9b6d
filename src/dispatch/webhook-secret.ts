/** The secrets by which webhooks are signed: given, or made. */
import { base64Of } from '../job/bytes';
import { readText } from '../job/envelope/fields';
import { parseSecrets, SINGLE_SECRET_RULE } from './signature';

/** One of a client's own. */
export const readWebhookSecret = readText(
  (text) => parseSecrets(text)?.length === 1 && !/[\s,]/.test(text),
  SINGLE_SECRET_RULE,
);

/** As Standard Webhooks has them. */
export function newWebhookSecret(): string {
  return `whsec_${base64Of(crypto.getRandomValues(new Uint8Array(24)))}`;
}

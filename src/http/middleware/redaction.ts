/** Redacts payloads for callers that may not see all of them; the runner of a job gets all of it. */
import { readConfig } from '../../config';
import { type Caller, seesEverything } from '../context';
import type { Check } from '../route';

export const redaction: Check = (c, { toWorker }) => {
  const caller: Caller | undefined = c.get('caller');
  if (caller && !seesEverything(caller) && !toWorker) {
    const { redact } = readConfig(c.env);
    if (redact) c.set('redact', redact);
  }
};

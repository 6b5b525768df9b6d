/** Has payloads redacted for callers that may not see all of them; whoever runs a job is given all of it. */
import { readConfig } from '../../config';
import { type Caller, type Middleware, seesEverything } from '../context';
import { routeOf } from '../routes';

export const redaction: Middleware = async (c, next) => {
  const caller: Caller | undefined = c.get('caller');
  if (caller && !seesEverything(caller) && !routeOf(c)?.toWorker) {
    const { redact } = readConfig(c.env);
    if (redact) c.set('redact', redact);
  }
  await next();
};

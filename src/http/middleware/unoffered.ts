/** Refuses headers that ask for a guarantee this version does not give; ignoring them would break the promise. */
import { invalidRequest, unsupported } from '../../job/errors';
import type { Middleware } from '../context';

const MAX_IDEMPOTENCY_KEY = 256;

export function refuseUnoffered(): Middleware {
  return async (c, next) => {
    if (c.req.header('X-OJS-Tenant') !== undefined) refuse('X-OJS-Tenant');
    const key = c.req.header('Idempotency-Key');
    if (key !== undefined && c.req.method === 'POST') {
      if (key.length > MAX_IDEMPOTENCY_KEY) {
        throw invalidRequest('Idempotency-Key', `Idempotency-Key has more than ${MAX_IDEMPOTENCY_KEY} characters.`);
      }
      refuse('Idempotency-Key');
    }
    await next();
  };
}

function refuse(header: string): never {
  throw unsupported(`The header ${header} is not offered by this version.`, { field: header });
}

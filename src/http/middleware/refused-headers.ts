/** Refuses headers that ask for a guarantee this version does not give; ignoring them would break the promise. */
import { unsupported } from '../../job/errors';
import type { Middleware } from '../context';

/** Where an answer is remembered under a key. */
const IDEMPOTENT_ROUTES =
  /^\/ojs\/v1\/(jobs(\/batch|\/bulk)?|(admin\/)?(jobs\/bulk\/(cancel|retry|delete)|dead-letter\/retry)|dead-letter\/purge)$/;

export function refuseUnoffered(): Middleware {
  return async (c, next) => {
    if (c.req.header('X-OJS-Tenant') !== undefined) refuse('X-OJS-Tenant');
    const keyed = c.req.method === 'POST' && c.req.header('Idempotency-Key') !== undefined;
    if (keyed && !IDEMPOTENT_ROUTES.test(c.req.path)) refuse('Idempotency-Key');
    await next();
  };
}

function refuse(header: string): never {
  throw unsupported(`The header ${header} is not offered here.`, { field: header });
}

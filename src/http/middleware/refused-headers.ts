/** Refuses headers that ask for a guarantee this version does not give; ignoring them would break the promise. */
import { unsupported } from '../../job/errors';
import type { Middleware } from '../context';
import { routeOf } from '../routes';

export const refusedHeaders: Middleware = async (c, next) => {
  if (c.req.header('X-OJS-Tenant') !== undefined) refuse('X-OJS-Tenant');
  const keyed = c.req.method === 'POST' && c.req.header('Idempotency-Key') !== undefined;
  if (keyed && !routeOf(c)?.takesIdempotencyKey) refuse('Idempotency-Key');
  await next();
};

function refuse(header: string): never {
  throw unsupported(`The header ${header} is not offered here.`, { field: header });
}

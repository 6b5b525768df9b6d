/** Refuses headers that ask for a guarantee this version does not give; ignoring them would break the promise. */
import { unsupported } from '../../job/errors';
import type { Check } from '../route';

export const refusedHeaders: Check = (c, { takesIdempotencyKey }) => {
  if (c.req.header('X-OJS-Tenant') !== undefined) refuse('X-OJS-Tenant');
  if (takesIdempotencyKey || c.req.method !== 'POST') return;
  if (c.req.header('Idempotency-Key') !== undefined) refuse('Idempotency-Key');
};

function refuse(header: string): never {
  throw unsupported(`The header ${header} is not supported here.`, { field: header });
}

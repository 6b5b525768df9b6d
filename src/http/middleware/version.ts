/** Announces the protocol version and refuses requests written for another major one. */
import { unsupported } from '../../job/errors';
import { quote } from '../../job/text';
import type { Check } from '../route';

export const OJS_VERSION = '1.0';

export const protocolVersion: Check = (c) => {
  c.get('headers')['OJS-Version'] = OJS_VERSION;
  const asked = c.req.header('OJS-Version');
  if (asked !== undefined && !/^1(\.\d+)*(-[0-9a-z.-]+)?$/i.test(asked.trim())) {
    throw unsupported(`OJS version ${quote(asked)} is not supported; this server speaks ${OJS_VERSION}.`, {
      header: 'OJS-Version',
      supported: [OJS_VERSION],
    });
  }
};

/** Refuses headers that ask for a guarantee this version does not give: ignoring them would break the promise. */
export const refusedHeaders: Check = (c, { takesIdempotencyKey }) => {
  if (c.req.header('X-OJS-Tenant') !== undefined) refuse('X-OJS-Tenant');
  if (takesIdempotencyKey || c.req.method !== 'POST') return;
  if (c.req.header('Idempotency-Key') !== undefined) refuse('Idempotency-Key');
};

function refuse(header: string): never {
  throw unsupported(`The header ${header} is not supported here.`, { field: header });
}

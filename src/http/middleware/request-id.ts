/** Gives every request an id: the client's own when it is printable, else a new one. Shown in every answer. */
import { v7 } from 'uuid';
import type { Middleware } from '../context';

const ACCEPTED = /^[\x21-\x7e]{1,128}$/;

export const requestId: Middleware = async (c, next) => {
  const own = c.req.header('X-Request-ID');
  const id = own !== undefined && ACCEPTED.test(own) ? own : `req_${v7()}`;
  c.set('requestId', id);
  c.header('X-Request-ID', id);
  await next();
};

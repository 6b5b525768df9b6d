/** Answers mistakes in the deployment's variables before a request has any effect; reports about attempts go on. */
import { readConfig } from '../../config';
import type { Middleware } from '../context';
import { routeOf, scopeOf } from '../routes';

export const configuration: Middleware = async (c, next) => {
  if (scopeOf(c) !== 'public' && !routeOf(c)?.reports) readConfig(c.env);
  await next();
};

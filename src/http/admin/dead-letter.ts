/** Operators' routes over dead letters. */
import { actOnDeadLetters } from '../dead-letter/bulk';
import { listDeadLetters, showStats } from '../dead-letter/list';
import { deleteDeadLetter, retryDeadLetter } from '../dead-letter/routes';
import { del, get, post, type Route } from '../route';

/** Routes below `/ojs/v1/admin`. */
export const adminDeadLetterRoutes: readonly Route[] = [
  get('/dead-letter', (c) => listDeadLetters(c, 'page')),
  get('/dead-letter/stats', showStats),
  post('/dead-letter/retry', (c) => actOnDeadLetters(c, 'retry'), { takesIdempotencyKey: true }),
  del('/dead-letter', (c) => actOnDeadLetters(c, 'delete'), { scope: 'admin:purge', takesIdempotencyKey: true }),
  post('/dead-letter/:id/retry', retryDeadLetter),
  del(
    '/dead-letter/:id',
    async (c) => {
      await deleteDeadLetter(c);
      return c.body(null, 204);
    },
    { scope: 'admin:purge' },
  ),
];

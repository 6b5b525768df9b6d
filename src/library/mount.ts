/** Where the queue is in a Worker that serves other paths too. */
import { Hono } from 'hono';
import { routePath } from 'hono/route';
import type { Env } from '../config';

/** Paths of a Worker that has others as well. */
export function isOurs(path: string): boolean {
  return isBelow('/ojs', path);
}

function isBelow(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

function isRoot(path: string): boolean {
  return path === '' || path === '/';
}

function wantsPage({ method, headers }: Request): boolean {
  return (method === 'GET' || method === 'HEAD') && headers.get('Accept')?.includes('text/html') === true;
}

/** The queue below any path of another app, whatever copy of Hono that is. */
export function mountable(serve: (request: Request, env: Env) => Promise<Response>): Hono {
  return new Hono().all('*', async (c, next) => {
    const base = baseOf(routePath(c), c.req.path);
    const path = c.req.path.slice(base.length);
    // Below a path of its own the dashboard is the queue's too, and a browser that opens this path is led there.
    const isDashboard = base !== '' && (isBelow('/ui', path) || (isRoot(path) && wantsPage(c.req.raw)));
    if (!isOurs(path) && !isDashboard) return await next();
    if (base === '') return await serve(c.req.raw, c.env as Env);
    const url = new URL(c.req.url);
    url.pathname = url.pathname.slice(base.length);
    const response = await serve(new Request(url, c.req.raw), c.env as Env);
    return moved(response, base);
  });
}

/** The answer with its paths as they are outside: where to look next, and where a cookie holds. */
function moved(response: Response, base: string): Response {
  const location = response.headers.get('Location');
  const cookies = response.headers.getSetCookie();
  if (!location?.startsWith('/') && cookies.length === 0) return response;
  const outside = new Response(response.body, response);
  if (location?.startsWith('/')) outside.headers.set('Location', base + location);
  outside.headers.delete('Set-Cookie');
  for (const cookie of cookies)
    outside.headers.append('Set-Cookie', cookie.replace(/; Path=\/(?=;|$)/, `; Path=${base}/`));
  return outside;
}

/** The part of a path that stands before what the mounted app serves. @param route such as `/tocsin/*` */
function baseOf(route: string, path: string): string {
  const segments = route.replace(/\/?\*$/, '').split('/').length;
  return path.split('/').slice(0, segments).join('/');
}

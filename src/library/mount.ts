import { Hono } from 'hono';
import { routePath } from 'hono/route';
import type { Env } from '../config';
import { COOKIES, isForWholeHost } from '../http/session/cookies';

/** Paths of a Worker that has others as well. */
export const isOurs = (path: string): boolean => isBelow('/ojs', path);

const isBelow = (folder: string, path: string): boolean => path === folder || path.startsWith(`${folder}/`);

const wantsPage = ({ method, headers }: Request): boolean =>
  (method === 'GET' || method === 'HEAD') && headers.get('Accept')?.includes('text/html') === true;

/** The queue below any path of another app, whatever copy of Hono that is. */
export function mountable(serve: (request: Request, env: Env) => Promise<Response>): Hono {
  return new Hono().all('*', async (c, next) => {
    const url = new URL(c.req.url);
    // Both as they are written: `c.req.path` is decoded, and then shorter.
    const base = baseOf(routePath(c), url.pathname);
    const path = url.pathname.slice(base.length);
    // Below a path of its own the dashboard is the queue's too, and a browser that opens this path is led there.
    const isDashboard = base !== '' && (isBelow('/ui', path) || (['', '/'].includes(path) && wantsPage(c.req.raw)));
    if (!isOurs(path) && !isDashboard) return await next();
    if (base === '') return await serve(c.req.raw, c.env as Env);
    url.pathname = path;
    const request = new Request(url, c.req.raw);
    request.headers.set('X-Forwarded-Prefix', base);
    const cookies = request.headers.get('Cookie');
    if (cookies !== null) request.headers.set('Cookie', cookiesOf(cookies, base));
    return moved(await serve(request, c.env as Env), base);
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
  for (const cookie of cookies) outside.headers.append('Set-Cookie', ownCookie(cookie, base));
  return outside;
}

/**
 * A cookie of a mounted queue. Its name carries the path to separate two queues of one Worker: on HTTPS, a cookie
 * that no other host can set must be for `Path=/`.
 */
function ownCookie(cookie: string, base: string): string {
  const named = cookie.replace('=', `${suffixOf(base)}=`);
  return isForWholeHost(cookie) ? named : named.replace(/; Path=\/(?=;|$)/, `; Path=${base}/`);
}

/** A request's cookies for the queue: its own without the path in the name, none of another queue. */
function cookiesOf(header: string, base: string): string {
  const outside = new Map(COOKIES.map((name) => [name + suffixOf(base), name]));
  const cookies = header.split(';').map((cookie) => cookie.trim().split(/=(.*)/s));
  const own = cookies.flatMap(([name = '', value = '']) =>
    outside.has(name) ? [`${outside.get(name)}=${value}`] : [],
  );
  return own.join('; ');
}

const suffixOf = (base: string) => `.${encodeURIComponent(base.slice(1))}`;

/** The part of a path before what the mounted app serves. @param route such as `/tocsin/*` */
function baseOf(route: string, path: string): string {
  const segments = route.replace(/\/?\*$/, '').split('/').length;
  return path.split('/').slice(0, segments).join('/');
}

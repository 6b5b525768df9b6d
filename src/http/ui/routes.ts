/**
 * The dashboard: one HTML page for all of its paths, and its scripts and styles. It holds no data, so it needs no key;
 * it gets its data from the API. Its URLs are relative, so it works wherever the queue is mounted.
 */
import type { Media } from '../../contract/route';
import { ui } from '../../contract/ui';
import { notFound } from '../../job/errors';
import { type Answer, type AppContext, respond } from '../context';
import { type Check, serve } from '../route';

/** The output of `.ci/ui.mjs`. Declared again, because the package has no declarations of built files. */
interface Dashboard {
  shell: string;
  version: string;
  assets: Readonly<Record<string, { type: string; body: string }>>;
}

let dashboard: Dashboard | undefined;

/** Adds the dashboard to this Worker. Without this call it stays out of the bundle: it is a fifth of it. */
export function serveDashboard(built: Dashboard): void {
  dashboard = built;
}

/** Scripts, styles, images and calls of this origin alone; other sites may not frame the page. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'self'",
  "frame-ancestors 'none'",
].join('; ');

const COMMON = { 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' };

/** Routes from the root on. The API is found relative to each place. */
export const uiRoutes = serve(ui, {
  asset,
  page: (c) => page(c, '/ui', '../ojs/v1/'),
  assetBelow: asset,
  pageBelow: (c) => page(c, '/ojs/ui', '../v1/'),
});

/** Leads a browser that opens the root to the dashboard. Other clients get the usual answer of the root. */
export const frontDoor: Check = (c) => {
  if (!dashboard || c.req.path !== '/' || (c.req.method !== 'GET' && c.req.method !== 'HEAD')) return undefined;
  if (!c.req.header('Accept')?.includes('text/html')) return undefined;
  return respond(c, null, 302, { Location: '/ui', 'Cache-Control': 'no-store', Vary: 'Accept' });
};

function page(c: AppContext, place: string, api: string) {
  const { shell, version } = served();
  const base = baseFrom(c.req.path.slice(place.length));
  const etag = `"${version}"`;
  const headers = { ...COMMON, ETag: etag, 'Cache-Control': 'no-cache', 'Content-Security-Policy': POLICY };
  if (isHeld(c, etag)) return notModified(c, headers);
  const html = shell.replace('%BASE%', base).replace('%API%', api);
  return respond(c, html, 200, { ...headers, 'Content-Type': 'text/html; charset=utf-8' }) as Answer<
    Media<'text/html'>
  >;
}

function served(): Dashboard {
  if (dashboard) return dashboard;
  throw notFound(
    'dashboard',
    'ui',
    'This Worker was built without one: import tocsin/queue, not tocsin/queue/headless.',
  );
}

/** From a page back to the dashboard's root, as a relative URL. @param below the path behind that place */
function baseFrom(below: string): string {
  if (below === '') return 'ui/';
  const depth = below.split('/').length - 2;
  return depth === 0 ? './' : '../'.repeat(depth);
}

function asset(c: AppContext) {
  const { assets } = served();
  const name = c.req.param('name') ?? '';
  const found = Object.hasOwn(assets, name) ? assets[name] : undefined;
  if (!found) throw notFound('asset', name, 'A new version of the dashboard was deployed: reload the page.');
  const etag = `"${name}"`;
  const headers = { ...COMMON, ETag: etag, 'Cache-Control': 'public, max-age=31536000, immutable' };
  if (isHeld(c, etag)) return notModified(c, headers);
  // Or another of the types that its contract names.
  return respond(c, found.body, 200, { ...headers, 'Content-Type': found.type }) as Answer<Media<'text/css'>>;
}

const notModified = (c: AppContext, headers: Record<string, string>) =>
  respond(c, null, 304, headers) as Answer<null, 304>;

function isHeld(c: AppContext, etag: string): boolean {
  const held = c.req.header('If-None-Match');
  return held?.split(',').some((one) => one.trim().replace(/^W\//, '') === etag) === true;
}

/** The dashboard: one page for all of its paths, and its scripts and styles. It holds no data, so it needs no key. */
import { get, type Media } from './route';

type Asset = { 200: Media<'text/css'> | Media<'text/javascript'> | Media<'image/svg+xml'>; 304: null; errors: 404 };

/** From the root on. The second place is for Workers that have pages of their own, and hand over `/ojs/` only. */
export const ui = {
  /** Serves a script, a style or an image of the dashboard. */
  asset: get<Asset>('/ui/assets/:name', { scope: 'public' }),
  /** Serves the page of the dashboard. */
  page: get<{ 200: Media<'text/html'>; 304: null; errors: 404 }>('/ui/*', { scope: 'public' }),
  /** Serves a script, a style or an image of the dashboard, at its second path. */
  assetBelow: get<Asset>('/ojs/ui/assets/:name', { scope: 'public' }),
  /** Serves the page of the dashboard, at its second path. */
  pageBelow: get<{ 200: Media<'text/html'>; 304: null; errors: 404 }>('/ojs/ui/*', { scope: 'public' }),
};

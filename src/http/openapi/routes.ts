/** The document of the API, as its contracts make it. */
import { openapi } from '../../contract/openapi';
import { type AppContext, media } from '../context';
import { mountPrefix } from '../request/path';
import { serve } from '../route';
import { document } from './built';

/** Routes below `/ojs/v1`. */
export const openapiRoutes = serve(openapi, { show });

function show(c: AppContext) {
  const servers = JSON.stringify([{ url: mountPrefix(c) || '/' }]);
  return media(
    c,
    document.replace('[{"url":"/"}]', () => servers),
    'application/json',
  );
}

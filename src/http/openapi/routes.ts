/** The document of the API, as its contracts make it. */
import { openapi } from '../../contract/openapi';
import { type AppContext, media } from '../context';
import { mountPrefix } from '../request/path';
import { serve } from '../route';
import { documentText } from './document';

/** Routes below `/ojs/v1`. */
export const openapiRoutes = serve(openapi, { show });

function show(c: AppContext) {
  return media(c, documentText(mountPrefix(c) || '/'), 'application/json');
}

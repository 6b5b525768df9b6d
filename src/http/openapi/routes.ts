/** The document of the API, as its contracts make it. */
import { openapi } from '../../contract/openapi';
import { type AppContext, media } from '../context';
import { mountPrefix } from '../request/path';
import { serve } from '../route';
import { document } from './built';

export const openapiRoutes = serve(openapi, {
  show: (c: AppContext) => media(c, documentText(mountPrefix(c) || '/'), 'application/json'),
});

/** JSON text. @param url of the server */
export const documentText = (url: string): string => document.replace('[{"url":"/"}]', () => JSON.stringify([{ url }]));

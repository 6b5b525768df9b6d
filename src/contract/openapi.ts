/** The document of the API. */
import { get, type Media } from './route';

/** Below `/ojs/v1`. */
export const openapi = {
  /** Describes the API for programs: OpenAPI 3.1. */
  show: get<{ 200: Media<'application/json'> }>('/openapi.json', { scope: 'public' }),
};

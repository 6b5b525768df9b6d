/** The queue as a library: a Worker that imports it holds the queue, and its dashboard. @module tocsin/queue */
import * as built from '../http/ui/built';
import { serveDashboard } from '../http/ui/routes';

export * from './headless';

serveDashboard(built);

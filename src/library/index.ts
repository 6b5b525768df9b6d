/** The queue as a library: a Worker that imports it holds the queue, and its dashboard. @module tocsin/queue */
import { withDashboard } from './dashboard';

export * from './headless';

withDashboard();

/** What the demo takes from the project: the client of a producer, and how documents name their anchors. */
export { TocsinClient } from '../../src/client';
export type { DocumentJobs } from '../documents/src/document';
export { anchorsOf } from '../documents/src/markdown';

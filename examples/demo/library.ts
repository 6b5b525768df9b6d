/** The parts of the project that the demo uses: the producer's client, and the anchors of documents. */
export { TocsinClient } from '../../src/client';
export type { DocumentJobs } from '../documents/src/document';
export { anchorsOf } from '../documents/src/markdown';

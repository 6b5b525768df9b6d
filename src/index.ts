/** The Worker's entry: the queue on its own, with no handlers of its own. */
import './library/dashboard';
import { createTocsin } from './library/create';

export { Tocsin, TocsinHandlers } from './library/entrypoints';
export { DirectoryObject, QueueObject, UniqueLockObject, WorkflowObject } from './library/objects';

export default createTocsin().worker();

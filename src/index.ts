/** The Worker's entry: the queue on its own, with no handlers of its own. */
import { createTocsin } from './library/create';
import { withDashboard } from './library/dashboard';

export { Tocsin, TocsinHandlers } from './library/entrypoints';
export { DirectoryObject, QueueObject, UniqueLockObject, WorkflowObject } from './library/objects';

withDashboard();

export default createTocsin().worker();

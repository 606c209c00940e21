#ifndef HONE_SERVER_RESEARCH_REGISTER_H_
#define HONE_SERVER_RESEARCH_REGISTER_H_

namespace hone::research {

// Adds the strategies, models, feature sets and templates of the literature to the registries of
// the tuner. Only main programs and tests call it, before they start threads. Further calls do
// nothing.
void Register();

}  // namespace hone::research

#endif  // HONE_SERVER_RESEARCH_REGISTER_H_

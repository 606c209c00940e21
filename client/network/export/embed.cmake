# Writes C++ arrays with the content of files: cmake -DOUTPUT=… -DFILES=…;… -P embed.cmake
set(arrays "")
set(table "")
set(number 0)
foreach(file ${FILES})
  file(READ ${file} content HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" content "${content}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," content "${content}")
  get_filename_component(name ${file} NAME)
  string(APPEND arrays "constexpr char kFile${number}[] = {\n${content}};\n")
  string(APPEND table "    {\"${name}\", {kFile${number}, sizeof kFile${number}}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"client/network/export/embedded_files.h\"\n\nnamespace hone::network {\nnamespace {\n\n${arrays}\n"
     "constexpr EmbeddedFile kFiles[] = {\n${table}};\n\n}  // namespace\n\n"
     "absl::Span<const EmbeddedFile> EmbeddedFiles() { return kFiles; }\n\n}  // namespace hone::network\n")
